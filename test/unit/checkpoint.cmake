# Joint graphs, and the solvers of activation checkpointing.
set(_here ${CMAKE_CURRENT_LIST_DIR})
if(TARGET AccelJointGraph)
  accel_unit_test(joint-graph-test ${_here}/JointGraphTest.cpp
    LINK AccelJointGraph)
endif()
if(TARGET AccelPipeline)
  # Read by test/Passes/joint-graph.test.
  accel_test_tool(joint-check ${_here}/JointCheck.cpp MLIR
    LINK AccelPipeline MLIRParser)
endif()
if(TARGET AccelSavedSet)
  accel_unit_test(saved-set-test ${_here}/SavedSetTest.cpp
    ${_here}/ParetoTest.cpp LINK AccelSavedSet)
  # Run by test/bench.
  add_executable(ac-solve ${_here}/../bench/ac_solve.cpp)
  target_link_libraries(ac-solve PRIVATE AccelSavedSet AccelTargets)
  add_dependencies(unit-tests ac-solve)
endif()
if(TARGET AccelStepModel)
  accel_unit_test(compiled-cut-test ${_here}/CompiledCutTest.cpp
    LINK AccelStepModel)
endif()
