# Schedules, their verifier, simulator and oracle; cuts into stages: no MLIR.
if(TARGET AccelPipelineSchedules)
  accel_unit_test(pipeline-schedules-test
    ${CMAKE_CURRENT_LIST_DIR}/PipelineScheduleTest.cpp
    ${CMAKE_CURRENT_LIST_DIR}/PipelineOptimumTest.cpp
    ${CMAKE_CURRENT_LIST_DIR}/PipelineStagesTest.cpp LINK AccelPipelineSchedules)
endif()
