if(TARGET AccelExecute)
  set(_here ${CMAKE_CURRENT_LIST_DIR})
  accel_unit_test(runtime-execute-test ${_here}/RuntimeExecuteTest.cpp
    ${_here}/RuntimeRanks.cpp ${_here}/RuntimeTinyPlan.cpp
    LINK AccelCheckpoint AccelExecute AccelPlan)
  accel_unit_test(runtime-data-test ${_here}/RuntimeDataTest.cpp
    LINK AccelData)
  accel_unit_test(runtime-pieces-test ${_here}/RuntimePiecesTest.cpp
    LINK AccelCheckpoint AccelExecute)
endif()
