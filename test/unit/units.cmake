# Unit sets, and the plain rewrites behind the schedule passes: no MLIR.
if(TARGET AccelUnitSets)
  set(_here ${CMAKE_CURRENT_LIST_DIR})
  accel_unit_test(unit-sets-test ${_here}/UnitSetsTest.cpp LINK AccelUnitSets)
  accel_unit_test(overlap-test ${_here}/OverlapTest.cpp
    ${_here}/PlanFixture.cpp
    LINK AccelOverlap AccelBuildProgram AccelAssignMemory)
endif()
