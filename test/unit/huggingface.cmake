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
  accel_unit_test(published-models-test ${_here}/PublishedModelsTest.cpp
    LINK AccelHuggingFaceConfig)
  # Read by test/parity/hf_names.py and hf_numerics.py.
  accel_test_tool(hf-dump ${_here}/HuggingFaceDump.cpp
    LINK AccelHuggingFaceConfig)
endif()
if(TARGET AccelHuggingFace)
  accel_unit_test(huggingface-build-test ${_here}/HuggingFaceBuildTest.cpp MLIR
    LINK AccelHuggingFace MLIRParser)
  accel_test_tool(hf-model-dump ${_here}/HuggingFaceModelDump.cpp MLIR
    LINK AccelHuggingFace)
endif()
