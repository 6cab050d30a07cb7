# Checkpoint folders, read without LibTorch.
accel_unit_test(checkpoint-folder-test
  ${CMAKE_CURRENT_LIST_DIR}/FileIoTest.cpp
  ${CMAKE_CURRENT_LIST_DIR}/ParamGroupsTest.cpp ${CMAKE_CURRENT_LIST_DIR}/PickleTest.cpp
  ${CMAKE_CURRENT_LIST_DIR}/StateKeysTest.cpp
  ${CMAKE_CURRENT_LIST_DIR}/TrainedOfPlanTest.cpp
  LINK AccelCheckpointFolder)
