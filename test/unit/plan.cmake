set(_here ${CMAKE_CURRENT_LIST_DIR})
# Plans and programs that the tests of several areas start from.
add_library(AccelPlanFixture STATIC ${_here}/PlanFixture.cpp)
target_link_libraries(AccelPlanFixture PUBLIC AccelPlan)
target_compile_options(AccelPlanFixture PRIVATE ${ACCEL_TEST_OPTIONS})
accel_use_pch(AccelPlanFixture test)
accel_unit_test(plan-test ${_here}/DeterministicTest.cpp ${_here}/ExchangesTest.cpp ${_here}/MeshTest.cpp ${_here}/PlanTest.cpp
  ${_here}/JsonParseTest.cpp ${_here}/PlanJsonTest.cpp ${_here}/PlanVerifyTest.cpp
  ${_here}/PlanTimelineTest.cpp ${_here}/QuantizedWeightsTest.cpp
  ${_here}/UpdateLayoutTest.cpp
  LINK AccelPlan AccelPlanFixture)
# Read by test/Plan/schema.test.
accel_test_tool(plan-dump ${_here}/PlanDump.cpp LINK AccelPlan AccelPlanFixture)
