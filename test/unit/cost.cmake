if(TARGET AccelCost)
  accel_unit_test(cost-test ${CMAKE_CURRENT_LIST_DIR}/CostTest.cpp
    LINK AccelCost AccelPlanFixture)
endif()
