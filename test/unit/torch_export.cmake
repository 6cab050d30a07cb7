accel_unit_test(torch-export-test ${CMAKE_CURRENT_LIST_DIR}/TorchExportTest.cpp
  ${CMAKE_CURRENT_LIST_DIR}/TorchExportArchiveTest.cpp
  ${CMAKE_CURRENT_LIST_DIR}/TorchExportBadInputTest.cpp
  LINK AccelTorchExportProgram)
target_compile_definitions(torch-export-test PRIVATE
  ACCEL_PT2_CORPUS="${PROJECT_SOURCE_DIR}/test/fuzz/corpus/pt2")
