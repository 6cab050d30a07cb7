# Step models and executors.
set(_here ${CMAKE_CURRENT_LIST_DIR})
if(TARGET AccelBuildStepModel)
  # Read by test/parity/executor_cases.py.
  accel_test_tool(step-model-dump ${_here}/StepModelDump.cpp MLIR
    LINK AccelAdapters AccelBuildStepModel AccelExecutorOf AccelHuggingFace
      AccelImport)
endif()
if(TARGET AccelBuildStepModel)
  accel_unit_test(accel-run-step-test ${_here}/AccelRunStepTest.cpp MLIR
    LINK AccelBuildStepModel AccelHuggingFace AccelBuildPlan AccelPipeline)
endif()
if(TARGET AccelFrameworkSteps)
  accel_unit_test(executors-test ${_here}/ExecutorsTest.cpp
    ${_here}/DeepspeedStepTest.cpp ${_here}/GoldenUnitsTest.cpp
    ${_here}/OutsideStepsTest.cpp
    ${_here}/PlannedStepsTest.cpp
    ${_here}/PreferenceTest.cpp
    ${_here}/RecordTest.cpp
    ${_here}/StepModels.cpp LINK AccelFrameworkSteps)
endif()
if(TARGET AccelFrameworkSteps)
  add_executable(executor-speed ${_here}/../bench/executor_speed.cpp
    ${_here}/StepModels.cpp)
  target_link_libraries(executor-speed PRIVATE AccelFrameworkSteps)
endif()
