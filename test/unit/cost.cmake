if(TARGET AccelCost)
  accel_unit_test(cost-test ${CMAKE_CURRENT_LIST_DIR}/CostTest.cpp
    ${CMAKE_CURRENT_LIST_DIR}/CollectiveTablesTest.cpp
    LINK AccelCost AccelPlanFixture)
  accel_unit_test(error-bars-test ${CMAKE_CURRENT_LIST_DIR}/ErrorBarsTest.cpp
    LINK AccelErrorBars)
endif()
