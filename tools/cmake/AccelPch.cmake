# Precompiled headers. Parsing headers is most of a build (docs/benchmarks.md), so
# sources of one kind share one precompiled header:
#
#   accel_pch(KIND HEADERS headers [LINK targets] [DEPENDS targets] [OPTIONS options])
#       declares the header of a kind, compiled as LINK and OPTIONS ask for
#   accel_use_pch(TARGET KIND)
#       compiles TARGET with it, if there is one
#
# Clang only: with GCC 12 they saved nothing.
set(_pch_default OFF)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND NOT ACCEL_FUZZ)
  set(_pch_default ON)
endif()
option(ACCEL_PCH "Precompiled headers" ${_pch_default})
if(ACCEL_PCH)
  # Without times in them ccache can tell that they are the same.
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
endif()

function(accel_pch kind)
  if(NOT ACCEL_PCH)
    return()
  endif()
  cmake_parse_arguments(A "" "" "HEADERS;LINK;DEPENDS;OPTIONS" ${ARGN})
  set(empty ${PROJECT_BINARY_DIR}/pch/${kind}.cpp)
  if(NOT EXISTS ${empty})
    file(WRITE ${empty} "// Has the precompiled header of ${kind} sources.\n")
  endif()
  add_library(AccelPch_${kind} OBJECT ${empty})
  target_link_libraries(AccelPch_${kind} PRIVATE ${A_LINK})
  target_compile_options(AccelPch_${kind} PRIVATE ${A_OPTIONS} -fpch-instantiate-templates)
  if(A_DEPENDS)
    add_dependencies(AccelPch_${kind} ${A_DEPENDS})
  endif()
  if(kind MATCHES "mlir")
    target_include_directories(AccelPch_${kind} SYSTEM PRIVATE
      ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
    target_compile_definitions(AccelPch_${kind} PRIVATE
      ${ACCEL_LLVM_DEFINITIONS} NDEBUG)
  endif()
  target_precompile_headers(AccelPch_${kind} PRIVATE ${A_HEADERS})
endfunction()

function(accel_use_pch target kind)
  if(TARGET AccelPch_${kind})
    # As the header was compiled, which CMake's -fPIE of executables is not.
    target_compile_options(${target} PRIVATE -fPIC)
    target_precompile_headers(${target} REUSE_FROM AccelPch_${kind})
  endif()
endfunction()
