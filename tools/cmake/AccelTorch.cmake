# The torch wheel as imported targets of our own (find_package(Torch) demands a
# CUDA toolkit): accel::torch, and accel::torch_cuda with the NCCL and CUDA
# headers of the wheel's own dependencies where they are installed.
# ACCEL_TORCH_DIR names the package folder; by default the one of .venv, else
# the one that python3 on PATH imports.
set(ACCEL_TORCH_DIR "" CACHE PATH "Folder of the torch Python package")
set(ACCEL_TORCH_FOUND FALSE)
set(_torch "${ACCEL_TORCH_DIR}")
if(NOT _torch)
  file(GLOB _torch LIST_DIRECTORIES true
       ${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch)
endif()
if(NOT _torch)
  execute_process(COMMAND python3 -c "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
                  OUTPUT_VARIABLE _torch OUTPUT_STRIP_TRAILING_WHITESPACE
                  ERROR_QUIET)
endif()
if(_torch AND EXISTS ${_torch}/lib/libtorch_cpu.so)
  set(ACCEL_TORCH_FOUND TRUE)
  get_filename_component(_site ${_torch} DIRECTORY)
  add_library(accel::torch INTERFACE IMPORTED GLOBAL)
  target_include_directories(accel::torch SYSTEM INTERFACE
    ${_torch}/include ${_torch}/include/torch/csrc/api/include)
  set(_rpath ${_torch}/lib)
  file(GLOB _nvidia LIST_DIRECTORIES true ${_site}/nvidia/*/lib)
  list(APPEND _rpath ${_nvidia})
  list(JOIN _rpath ":" _rpath)
  target_link_libraries(accel::torch INTERFACE
    ${_torch}/lib/libtorch_cpu.so ${_torch}/lib/libc10.so)
  target_link_options(accel::torch INTERFACE -Wl,-rpath,${_rpath}
    -Wl,--allow-shlib-undefined -Wl,--disable-new-dtags)
  target_compile_definitions(accel::torch INTERFACE USE_DISTRIBUTED USE_C10D)
  # Up to torch 2.11 const_data_ptr has a parameter by enable_if, whose name
  # clang mangles as GCC, which builds the wheels, only under an older ABI.
  file(STRINGS ${_torch}/include/ATen/core/TensorBase.h _by_enable_if
       REGEX "typename T, std::enable_if_t<!std::is_const_v<T>")
  if(_by_enable_if AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    target_compile_options(accel::torch INTERFACE -fclang-abi-compat=17)
  endif()
  find_path(GLOO_INCLUDE gloo/context.h)
  if(GLOO_INCLUDE)
    target_compile_definitions(accel::torch INTERFACE USE_C10D_GLOO)
    target_include_directories(accel::torch SYSTEM INTERFACE ${GLOO_INCLUDE})
  endif()
  file(GLOB _nccl ${_site}/nvidia/nccl/include)
  file(GLOB _cuda ${_site}/nvidia/cu1*/include
    ${_site}/nvidia/cuda_runtime/include ${_site}/nvidia/cudnn/include)
  if(EXISTS ${_torch}/lib/libtorch_cuda.so AND _nccl AND _cuda)
    set(ACCEL_TORCH_CUDA TRUE)
    add_library(accel::torch_cuda INTERFACE IMPORTED GLOBAL)
    target_include_directories(accel::torch_cuda SYSTEM INTERFACE ${_nccl} ${_cuda})
    target_compile_definitions(accel::torch_cuda INTERFACE USE_C10D_NCCL)
    target_link_libraries(accel::torch_cuda INTERFACE accel::torch
      ${_torch}/lib/libtorch_cuda.so ${_torch}/lib/libc10_cuda.so)
  endif()
  message(STATUS "accel-run: torch in ${_torch} (CUDA: ${ACCEL_TORCH_CUDA})")
endif()
