# accel_library(NAME SOURCES... [LINK targets...] [MLIR] [PCH kind]): a static
# library of this project. MLIR: the sources include MLIR headers (no exceptions,
# NDEBUG always, as Debian's archives are built; see docs/decisions). PCH: a
# precompiled header other than the one that its kind of sources has.
function(accel_library name)
  cmake_parse_arguments(A "MLIR" "PCH" "LINK;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${A_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC ${A_LINK})
  if(A_DEPENDS)
    add_dependencies(${name} ${A_DEPENDS})
  endif()
  if(A_MLIR)
    if(TARGET AccelPassesIncGen)
      add_dependencies(${name} AccelPassesIncGen)
    endif()
    target_include_directories(${name} SYSTEM PUBLIC ${MLIR_INCLUDE_DIRS}
                                                     ${LLVM_INCLUDE_DIRS})
    target_compile_definitions(${name} PUBLIC ${ACCEL_LLVM_DEFINITIONS} NDEBUG)
    target_compile_options(${name} PRIVATE ${ACCEL_MLIR_OPTIONS})
    set(pch mlir)
  elseif("accel::torch" IN_LIST A_LINK)
    set(pch torch)
  else()
    set(pch plain)
    if(ACCEL_COLD)
      target_compile_options(${name} PRIVATE ${ACCEL_COLD_OPTIONS})
      set(pch cold)
    endif()
  endif()
  if(A_PCH)
    set(pch ${A_PCH})
  endif()
  accel_use_pch(${name} ${pch})
endfunction()

# A folder sets ACCEL_COLD where nothing is called often enough to be worth the
# optimiser's time: what reads a job's few hundred lines, once.
set(ACCEL_COLD_OPTIONS "$<$<CONFIG:Release>:-O0>")

# Tests' own sources are not optimised: that is two thirds of their compile time.
# What they link is.
set(ACCEL_TEST_OPTIONS -O0)

# accel_test_tool(NAME SOURCES... [LINK targets...] [MLIR | TORCH]): a binary in
# build/bin that tests run; unit-tests builds all of them. MLIR, TORCH: whose
# headers the sources include.
function(accel_test_tool name)
  cmake_parse_arguments(A "MLIR;TORCH" "" "LINK" ${ARGN})
  add_executable(${name} ${A_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE ${A_LINK})
  target_compile_options(${name} PRIVATE ${ACCEL_TEST_OPTIONS})
  if(A_MLIR)
    accel_link_options(${name})
    accel_use_pch(${name} test_mlir)
  elseif(A_TORCH)
    accel_use_pch(${name} test_torch)
  else()
    accel_use_pch(${name} test)
  endif()
  add_dependencies(unit-tests ${name})
endfunction()

# accel_unit_test(NAME SOURCES... [LINK targets...] [MLIR | TORCH]): such a
# binary of GoogleTest, run by tools/check.
function(accel_unit_test name)
  accel_test_tool(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
endfunction()
