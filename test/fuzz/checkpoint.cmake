# Pickles of torch.distributed.checkpoint and torch.save.
accel_fuzzer(checkpoint ${CMAKE_CURRENT_LIST_DIR}/CheckpointFuzzer.cpp
  LINK AccelCheckpointFolder)
