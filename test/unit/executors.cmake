# Step models and executors.
set(_here ${CMAKE_CURRENT_LIST_DIR})
if(TARGET AccelBuildStepModel)
  # Read by test/parity/executor_cases.py.
  add_executable(step-model-dump ${_here}/StepModelDump.cpp)
  target_link_libraries(step-model-dump PRIVATE AccelAdapters
    AccelBuildStepModel AccelExecutorOf AccelHuggingFace AccelImport)
  target_compile_options(step-model-dump PRIVATE -fno-exceptions)
  accel_link_options(step-model-dump)
  add_dependencies(unit-tests step-model-dump)
endif()
if(TARGET AccelBuildStepModel)
  accel_unit_test(accel-run-step-test ${_here}/AccelRunStepTest.cpp MLIR
    LINK AccelBuildStepModel AccelHuggingFace AccelBuildPlan AccelPipeline)
  target_compile_options(accel-run-step-test PRIVATE -fno-exceptions)
  set_target_properties(accel-run-step-test PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)
endif()
if(TARGET AccelFrameworkSteps)
  accel_unit_test(executors-test ${_here}/ExecutorsTest.cpp
    ${_here}/GoldenUnitsTest.cpp ${_here}/RecordTest.cpp
    ${_here}/StepModels.cpp LINK AccelFrameworkSteps)
endif()
if(TARGET AccelFrameworkSteps)
  add_executable(executor-speed ${_here}/../bench/executor_speed.cpp
    ${_here}/StepModels.cpp)
  target_link_libraries(executor-speed PRIVATE AccelFrameworkSteps)
endif()
