# Unit sets: no MLIR.
if(TARGET AccelUnitSets)
  set(_here ${CMAKE_CURRENT_LIST_DIR})
  accel_unit_test(unit-sets-test ${_here}/UnitSetsTest.cpp LINK AccelUnitSets)
endif()
