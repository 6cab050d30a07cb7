if(TARGET AccelValidate)
  accel_unit_test(validate-test ${CMAKE_CURRENT_LIST_DIR}/ValidateTest.cpp
    ${CMAKE_CURRENT_LIST_DIR}/RowWordsTest.cpp
    ${CMAKE_CURRENT_LIST_DIR}/RunTableTest.cpp
    ${CMAKE_CURRENT_LIST_DIR}/TrainersTest.cpp
    ${CMAKE_CURRENT_LIST_DIR}/TorchtitanMeshTest.cpp
    ${CMAKE_CURRENT_LIST_DIR}/MegatronSecondsTest.cpp
    ${CMAKE_CURRENT_LIST_DIR}/MegatronTest.cpp
    ${CMAKE_CURRENT_LIST_DIR}/MegatronExpertsTest.cpp MLIR
    LINK AccelValidate)
  target_compile_definitions(validate-test PRIVATE
    ACCEL_MEASURED_RUNS="${PROJECT_SOURCE_DIR}/test/bench/Inputs/measured_runs.csv")
endif()
