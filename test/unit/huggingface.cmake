# Config.json and weights: no MLIR.
if(TARGET AccelHuggingFaceConfig)
  set(_here ${CMAKE_CURRENT_LIST_DIR})
  accel_unit_test(huggingface-config-test ${_here}/HuggingFaceConfigTest.cpp
    ${_here}/HuggingFaceBadConfigTest.cpp LINK AccelHuggingFaceConfig)
  target_compile_definitions(huggingface-config-test PRIVATE
    ACCEL_MODEL_CORPUS="${PROJECT_SOURCE_DIR}/test/fuzz/corpus/model")
  accel_unit_test(huggingface-safetensors-test
    ${_here}/HuggingFaceSafetensorsTest.cpp LINK AccelHuggingFaceConfig)
  accel_unit_test(huggingface-mixture-test ${_here}/HuggingFaceMixtureTest.cpp
    LINK AccelHuggingFaceConfig)
  # Read by test/parity/hf_names.py and hf_numerics.py.
  add_executable(hf-dump ${_here}/HuggingFaceDump.cpp)
  target_link_libraries(hf-dump PRIVATE AccelHuggingFaceConfig)
  add_dependencies(unit-tests hf-dump)
endif()
if(TARGET AccelHuggingFace)
  accel_unit_test(huggingface-build-test ${_here}/HuggingFaceBuildTest.cpp MLIR
    LINK AccelHuggingFace MLIRParser)
  add_executable(hf-model-dump ${_here}/HuggingFaceModelDump.cpp)
  target_link_libraries(hf-model-dump PRIVATE AccelHuggingFace)
  target_compile_options(hf-model-dump PRIVATE -fno-exceptions)
  accel_link_options(hf-model-dump)
  add_dependencies(unit-tests hf-model-dump)
endif()
