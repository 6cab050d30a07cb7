# Job files, with the mesh that accel-run reads.
accel_fuzzer(job ${CMAKE_CURRENT_LIST_DIR}/JobFuzzer.cpp LINK AccelJob)
