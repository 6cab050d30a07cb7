# config.json, adapter_config.json and safetensors headers.
accel_fuzzer(model ${CMAKE_CURRENT_LIST_DIR}/ModelFuzzer.cpp
  LINK AccelHuggingFaceConfig AccelJob)
# The runtime's reader needs no LibTorch, so its sources stand here.
accel_fuzzer(safetensors ${CMAKE_CURRENT_LIST_DIR}/SafetensorsFuzzer.cpp
  ${PROJECT_SOURCE_DIR}/runtime/checkpoint/Files.cpp
  ${PROJECT_SOURCE_DIR}/runtime/checkpoint/Safetensors.cpp
  ${PROJECT_SOURCE_DIR}/runtime/collectives/Progress.cpp
  LINK AccelHuggingFaceConfig AccelPlan nlohmann_json::nlohmann_json)
