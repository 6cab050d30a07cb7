if(TARGET AccelExecute)
  set(_here ${CMAKE_CURRENT_LIST_DIR})
  accel_unit_test(runtime-execute-test ${_here}/IndexChecksTest.cpp
    ${_here}/RuntimeExchangeTest.cpp ${_here}/RuntimeExecuteTest.cpp
    ${_here}/RuntimeRanks.cpp ${_here}/RuntimeTinyPlan.cpp TORCH
    LINK AccelCheckpoint AccelExecute AccelPlan)
  accel_unit_test(transfer-queue-test ${_here}/TransferQueueTest.cpp
    LINK AccelStorage)
  accel_unit_test(disk-states-test ${_here}/DiskStatesTest.cpp
    ${_here}/RuntimeTinyPlan.cpp TORCH LINK AccelExecute AccelPlan)
  accel_unit_test(runtime-data-test ${_here}/RuntimeDataTest.cpp TORCH
    LINK AccelData)
  accel_unit_test(runtime-pieces-test ${_here}/RuntimeMeetingTest.cpp
    ${_here}/RuntimePiecesTest.cpp TORCH
    LINK AccelCheckpoint AccelExecute)
  accel_unit_test(overwriting-test ${_here}/OverwritingTest.cpp TORCH
    LINK AccelTensors AccelPlan)
  accel_unit_test(pt2-test ${_here}/Pt2Test.cpp TORCH LINK AccelCheckpoint)
  accel_unit_test(progress-test ${_here}/ProgressTest.cpp TORCH
    LINK AccelCollectives)
  accel_unit_test(threads-test ${_here}/ThreadsTest.cpp
    ${PROJECT_SOURCE_DIR}/tools/accel-run/Threads.cpp TORCH
    LINK AccelCollectives AccelOptions)
  accel_unit_test(line-file-test ${_here}/LineFileTest.cpp
    ${PROJECT_SOURCE_DIR}/tools/accel-run/LineFile.cpp
    ${PROJECT_SOURCE_DIR}/tools/accel-run/LineLock.cpp TORCH
    LINK AccelCheckpoint AccelPlan nlohmann_json::nlohmann_json)
  accel_unit_test(random-test ${_here}/RandomTest.cpp TORCH LINK AccelExecute)
  # Read by test/Run.
  accel_test_tool(runtime-plan-dump ${_here}/RuntimePlanDump.cpp
    ${_here}/RuntimeTinyPlan.cpp LINK AccelPlan)
  # Read by test/parity.
  accel_test_tool(data-order ${_here}/DataOrder.cpp TORCH LINK AccelData)
  accel_test_tool(runtime-prepare ${_here}/RuntimePrepare.cpp TORCH
    LINK AccelExecute AccelPlan)
  # Run by hand.
  add_executable(disk-rates EXCLUDE_FROM_ALL ${_here}/../bench/disk_rates.cpp)
  target_link_libraries(disk-rates PRIVATE AccelStorage)
  add_executable(kernel-threads EXCLUDE_FROM_ALL
    ${_here}/../bench/kernel_threads.cpp)
  target_link_libraries(kernel-threads PRIVATE AccelExecute)
endif()
