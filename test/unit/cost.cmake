if(TARGET AccelCost)
  accel_unit_test(cost-test ${CMAKE_CURRENT_LIST_DIR}/PlanFixture.cpp
    ${CMAKE_CURRENT_LIST_DIR}/CostTest.cpp LINK AccelCost)
endif()
