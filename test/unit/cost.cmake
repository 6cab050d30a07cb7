if(TARGET AccelCost)
  accel_unit_test(cost-test ${CMAKE_CURRENT_LIST_DIR}/CostTest.cpp
    LINK AccelCost AccelPlanFixture)
  accel_unit_test(error-bars-test ${CMAKE_CURRENT_LIST_DIR}/ErrorBarsTest.cpp
    LINK AccelErrorBars)
endif()
