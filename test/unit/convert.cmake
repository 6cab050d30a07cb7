# From one kind of job to another: no MLIR.
if(TARGET AccelConvert)
  accel_unit_test(convert-rewriter-test
    ${CMAKE_CURRENT_LIST_DIR}/ConvertRewriterTest.cpp LINK AccelConvert)
endif()
if(TARGET AccelEstimate)
  accel_unit_test(estimate-test ${CMAKE_CURRENT_LIST_DIR}/EstimateTest.cpp
    LINK AccelEstimate)
endif()
