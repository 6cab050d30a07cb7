# CudaDevice.cpp and NcclBackend.cpp with mistakes that DRY_MUTANT chooses from,
# as a CUDA module of its own: what test/dry/run.py must see. A text that is no
# longer in its file is an error here.
macro(accel_mutant_of path)
  set(_mutated ${path})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
    ${PROJECT_SOURCE_DIR}/${path})
  file(READ ${PROJECT_SOURCE_DIR}/${path} _text)
endmacro()
function(accel_mutate from to)
  string(FIND "${_text}" "${from}" _at)
  if(_at EQUAL -1)
    message(FATAL_ERROR "test/dry/Mutants.cmake: ${_mutated} has no '${from}'")
  endif()
  string(REPLACE "${from}" "${to}" _text "${_text}")
  set(_text "${_text}" PARENT_SCOPE)
endfunction()
accel_mutant_of(runtime/execute/CudaDevice.cpp)
accel_mutate("namespace accel::run {"
  "static bool mutant(const char *name) {\n  const char *text = std::getenv(\"DRY_MUTANT\");\n  return text && std::string(text) == name;\n}\n\nnamespace accel::run {")
# Compute goes on before the data is there.
accel_mutate("events[timepoint].block(compute.unwrap());"
  "if (!mutant(\"no-await\")) events[timepoint].block(compute.unwrap());")
# A collective starts before what it sends is computed.
accel_mutate("ready.block(stream.unwrap());"
  "if (!mutant(\"no-enter\")) ready.block(stream.unwrap());")
# One timepoint of ten stands for nothing.
accel_mutate("events[timepoint].record("
  "if (!mutant(\"no-record\") || timepoint % 10 != 3) events[timepoint].record(")
# Memory is given back while it is used.
accel_mutate("return caching::get()->allocate(bytes);"
  "c10::DataPtr memory = caching::get()->allocate(bytes);\n    if (!mutant(\"early-free\")) return memory;\n    void *address = memory.get();\n    memory.clear();\n    return c10::DataPtr(address, device());")
# Compute goes on on the collective's stream.
accel_mutate("unwrap());\n    c10::cuda::setCurrentCUDAStream(compute);\n  }\n  void await"
  "unwrap());\n    if (!mutant(\"wrong-stream\")) c10::cuda::setCurrentCUDAStream(compute);\n  }\n  void await")
# Computation goes on only when the data is there: right, and slow.
accel_mutate("setCurrentCUDAStream(compute);\n  }\n  void await"
  "setCurrentCUDAStream(compute);\n    if (mutant(\"no-overlap\")) events[timepoint].block(compute.unwrap());\n  }\n  void await")
# The same of exchanges inside of functions.
accel_mutate("exchanged[number].block(compute.unwrap());"
  "if (!mutant(\"no-await-exchange\")) exchanged[number].block(compute.unwrap());")
accel_mutate("ready.block(exchange.unwrap());"
  "if (!mutant(\"no-enter-exchange\")) ready.block(exchange.unwrap());")
# A gather starts before its unit is updated; or when all units are; or into
# what the computation has freed.
accel_mutate("updates[unit].block(stream.unwrap());"
  "if (mutant(\"await-all-updates\")) {\n      ready.record(compute.unwrap());\n      ready.block(stream.unwrap());\n    } else if (!mutant(\"no-await-update\")) {\n      updates[unit].block(stream.unwrap());\n    }")
accel_mutate("pool(streamOf(role).unwrap());"
  "pool((mutant(\"one-pool\") ? compute : streamOf(role)).unwrap());")
# The host updates before the gradients are there.
accel_mutate("events[timepoint].synchronize();"
  "if (!mutant(\"no-host-wait\")) events[timepoint].synchronize();")
# The device is made current too late.
accel_mutate("  c10::cuda::set_device(index);"
  "  if (mutant(\"context\")) c10::cuda::getStreamFromPool(false, 0);\n  c10::cuda::set_device(index);")
file(CONFIGURE OUTPUT CudaDeviceMutants.cpp CONTENT "@_text@" @ONLY)

accel_mutant_of(runtime/collectives/NcclBackend.cpp)
accel_mutate("namespace accel::run {"
  "#include \"test/dry/Careless.h\"\n\nnamespace accel::run {")
accel_mutate("c10::make_intrusive<c10d::ProcessGroupNCCL>("
  "c10::make_intrusive<accel::dry::Careless>(")
file(CONFIGURE OUTPUT NcclBackendMutants.cpp CONTENT "@_text@" @ONLY)
add_library(accel-run-mutants MODULE EXCLUDE_FROM_ALL
  ${CMAKE_CURRENT_BINARY_DIR}/CudaDeviceMutants.cpp
  ${CMAKE_CURRENT_BINARY_DIR}/NcclBackendMutants.cpp)
set_target_properties(accel-run-mutants PROPERTIES PREFIX ""
  OUTPUT_NAME accel-run-cuda
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/mutants)
target_link_libraries(accel-run-mutants PRIVATE accel::torch_cuda)
