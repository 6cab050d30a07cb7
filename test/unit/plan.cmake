set(_here ${CMAKE_CURRENT_LIST_DIR})
accel_unit_test(plan-test ${_here}/MeshTest.cpp ${_here}/PlanFixture.cpp ${_here}/PlanTest.cpp
  ${_here}/JsonParseTest.cpp ${_here}/PlanJsonTest.cpp ${_here}/PlanVerifyTest.cpp
  ${_here}/PlanTimelineTest.cpp ${_here}/QuantizedWeightsTest.cpp
  LINK AccelPlan)
# Read by test/Plan/schema.test.
add_executable(plan-dump ${_here}/PlanFixture.cpp ${_here}/PlanDump.cpp)
target_link_libraries(plan-dump PRIVATE AccelPlan)
add_dependencies(unit-tests plan-dump)
