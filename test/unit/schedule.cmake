# schedule.program as plan::Program, and the passes over programs.
set(_here ${CMAKE_CURRENT_LIST_DIR})
if(TARGET AccelOverlapOrder)
  accel_unit_test(overlap-order-test ${_here}/OverlapOrderTest.cpp
    LINK AccelOverlapOrder)
endif()
if(TARGET AccelScheduleConvert)
  accel_unit_test(schedule-test ${_here}/ImportProgram.cpp
    ${_here}/ScheduleTest.cpp MLIR
    LINK AccelScheduleConvert AccelPlanFixture MLIRParser)
  accel_unit_test(overlap-test ${_here}/OverlapTest.cpp MLIR
    LINK AccelSchedulePasses AccelWritePrograms AccelPlanFixture)
  # Read by test/Dialect/Schedule.
  accel_test_tool(schedule-dump ${_here}/ImportProgram.cpp
    ${_here}/ScheduleDump.cpp MLIR LINK AccelScheduleConvert AccelPlanFixture)
endif()
