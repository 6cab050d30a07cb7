# Archives of torch.export: zip, JSON, symbolic sizes.
accel_fuzzer(pt2 ${CMAKE_CURRENT_LIST_DIR}/Pt2Fuzzer.cpp
  LINK AccelTorchExportProgram)
