if(TARGET AccelExecute)
  set(_here ${CMAKE_CURRENT_LIST_DIR})
  accel_unit_test(runtime-execute-test ${_here}/RuntimeExecuteTest.cpp
    ${_here}/RuntimeRanks.cpp ${_here}/RuntimeTinyPlan.cpp
    LINK AccelCheckpoint AccelExecute AccelPlan)
  accel_unit_test(runtime-data-test ${_here}/RuntimeDataTest.cpp
    LINK AccelData)
  accel_unit_test(runtime-pieces-test ${_here}/RuntimePiecesTest.cpp
    LINK AccelCheckpoint AccelExecute)
  accel_unit_test(pt2-test ${_here}/Pt2Test.cpp LINK AccelCheckpoint)
  accel_unit_test(progress-test ${_here}/ProgressTest.cpp
    LINK AccelCollectives)
  accel_unit_test(random-test ${_here}/RandomTest.cpp LINK AccelExecute)
  # Read by test/Run.
  add_executable(runtime-plan-dump ${_here}/RuntimePlanDump.cpp
    ${_here}/RuntimeTinyPlan.cpp)
  target_link_libraries(runtime-plan-dump PRIVATE AccelPlan)
  # Read by test/parity.
  add_executable(runtime-prepare ${_here}/RuntimePrepare.cpp)
  target_link_libraries(runtime-prepare PRIVATE AccelExecute AccelPlan)
  add_dependencies(unit-tests runtime-plan-dump runtime-prepare)
endif()
