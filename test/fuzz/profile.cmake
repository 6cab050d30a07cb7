accel_fuzzer(profile ${CMAKE_CURRENT_LIST_DIR}/ProfileFuzzer.cpp LINK AccelProfile)
