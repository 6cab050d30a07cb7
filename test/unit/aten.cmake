if(TARGET AccelAten)
  accel_unit_test(aten-test ${CMAKE_CURRENT_LIST_DIR}/AtenLayoutTest.cpp
    ${CMAKE_CURRENT_LIST_DIR}/AtenBuilderTest.cpp MLIR
    LINK AccelAten MLIRFuncDialect MLIRParser)
endif()
