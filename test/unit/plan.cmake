accel_unit_test(PlanTest PlanFixture.cpp PlanTest.cpp PlanJsonTest.cpp
  PlanVerifyTest.cpp PlanTimelineTest.cpp LINK AccelPlan)
