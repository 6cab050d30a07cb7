# Finds MLIR 22 and makes a fully static link possible: Debian's exported
# archives name libLLVM.so, which costs 20 ms at every start; they are
# rewritten to the few LLVM archives that are needed.
find_package(MLIR 22.1 REQUIRED CONFIG HINTS /usr/lib/llvm-22/lib/cmake/mlir)
if(NOT TARGET zstd::libzstd_shared)
  find_library(ZSTD_LIBRARY NAMES zstd libzstd.so.1 REQUIRED)
  add_library(zstd::libzstd_shared SHARED IMPORTED GLOBAL)
  set_target_properties(zstd::libzstd_shared PROPERTIES
    IMPORTED_LOCATION ${ZSTD_LIBRARY})
endif()
if(NOT ACCEL_LINK_MLIR_DYLIB)
  foreach(t IN LISTS MLIR_EXPORTED_TARGETS)
    get_target_property(old ${t} INTERFACE_LINK_LIBRARIES)
    if(old)
      set(new "")
      foreach(e IN LISTS old)
        if(e STREQUAL "LLVM" OR e STREQUAL "$<LINK_ONLY:LLVM>")
          list(APPEND new LLVMSupport LLVMRemarks LLVMCore LLVMTargetParser)
        else()
          list(APPEND new "${e}")
        endif()
      endforeach()
      set_target_properties(${t} PROPERTIES INTERFACE_LINK_LIBRARIES "${new}")
    endif()
  endforeach()
endif()
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
# mlir-tblgen takes its include path from the directory.
include_directories(SYSTEM ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
include(TableGen)
include(AddLLVM)
include(AddMLIR)
separate_arguments(ACCEL_LLVM_FLAGS NATIVE_COMMAND "${LLVM_DEFINITIONS}")
set(ACCEL_LLVM_DEFINITIONS "")
foreach(f IN LISTS ACCEL_LLVM_FLAGS)
  string(REGEX REPLACE "^-D" "" f "${f}")
  list(APPEND ACCEL_LLVM_DEFINITIONS "${f}")
endforeach()

# For executables that link MLIR archives.
function(accel_link_options target)
  target_link_options(${target} PRIVATE -B${LLVM_TOOLS_BINARY_DIR}
                      -fuse-ld=lld -Wl,--gc-sections -Wl,--as-needed)
endfunction()
# -O1: most of a plan's time is spent in MLIR's archives, and the code generator
# is most of a build's (docs/benchmarks.md, "Building").
set(ACCEL_MLIR_OPTIONS -fno-exceptions -Wno-unused-function
    "$<$<CONFIG:Release>:-O1>")
