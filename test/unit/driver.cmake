# Command lines, and what accel-opt does between one and its outputs.
set(_driver ${CMAKE_CURRENT_LIST_DIR}/driver)
if(TARGET AccelOptions)
  accel_unit_test(options-test ${_driver}/ArgumentsTest.cpp LINK AccelOptions)
endif()
if(TARGET AccelDriver)
  accel_unit_test(driver-test ${_driver}/CompileTest.cpp
    ${_driver}/CompareTest.cpp ${_driver}/EditFilesTest.cpp
    ${_driver}/InitFilesTest.cpp ${_driver}/InputsTest.cpp
    ${_driver}/LintFormatsTest.cpp
    ${_driver}/PlanOptionsTest.cpp MLIR LINK AccelDriver)
  target_compile_definitions(driver-test PRIVATE
    ACCEL_MODELS="${PROJECT_SOURCE_DIR}/test/parity/configs"
    ACCEL_DRIVER_INPUTS="${_driver}/Inputs")
  # Html.cpp without the definitions that name the charts.
  accel_unit_test(without-charts-test ${_driver}/WithoutChartsTest.cpp
    ${PROJECT_SOURCE_DIR}/tools/driver/Html/Html.cpp MLIR LINK AccelDriver)
  target_compile_definitions(without-charts-test PRIVATE
    ACCEL_HTML="${PROJECT_SOURCE_DIR}/tools/driver/Html")
endif()
