# schedule.program as plan::Program, and the passes over programs.
set(_here ${CMAKE_CURRENT_LIST_DIR})
if(TARGET AccelScheduleConvert)
  accel_unit_test(schedule-test ${_here}/ImportProgram.cpp ${_here}/PlanFixture.cpp
    ${_here}/ScheduleTest.cpp MLIR LINK AccelScheduleConvert MLIRParser)
  accel_unit_test(overlap-test ${_here}/OverlapTest.cpp ${_here}/PlanFixture.cpp
    MLIR LINK AccelSchedulePasses AccelWritePrograms)
  # Read by test/Dialect/Schedule.
  add_executable(schedule-dump ${_here}/ImportProgram.cpp ${_here}/PlanFixture.cpp
    ${_here}/ScheduleDump.cpp)
  target_link_libraries(schedule-dump PRIVATE AccelScheduleConvert)
  target_compile_options(schedule-dump PRIVATE -fno-exceptions)
  accel_link_options(schedule-dump)
  add_dependencies(unit-tests schedule-dump)
endif()
