accel_fuzzer(scripts ${CMAKE_CURRENT_LIST_DIR}/ScriptsFuzzer.cpp
  LINK AccelScripts)
