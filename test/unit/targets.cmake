if(TARGET AccelTargets)
  accel_unit_test(targets-test ${CMAKE_CURRENT_LIST_DIR}/TargetsTest.cpp
    LINK AccelTargets)
endif()
if(TARGET AccelTime)
  accel_unit_test(time-test ${CMAKE_CURRENT_LIST_DIR}/DriveQueueTest.cpp
    ${CMAKE_CURRENT_LIST_DIR}/PipelineTimeTest.cpp
    ${CMAKE_CURRENT_LIST_DIR}/TimeTest.cpp
    LINK AccelTime AccelPlanFixture)
endif()
