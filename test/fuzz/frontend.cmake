# The text frontend: YAML and JSON, the accelerate reader, rendering, fixes.
accel_fuzzer(frontend ${CMAKE_CURRENT_LIST_DIR}/FrontendFuzzer.cpp
  LINK AccelAccelerate)
