# The text frontends: no MLIR.
if(TARGET AccelJob)
  set(_here ${CMAKE_CURRENT_LIST_DIR})
  accel_unit_test(diagnostics-test ${_here}/DiagnosticsTest.cpp
    LINK AccelDiagnostics AccelRegex)
  accel_unit_test(yaml-test ${_here}/YamlTest.cpp LINK AccelYaml)
  accel_unit_test(accelerate-test ${_here}/AccelerateTest.cpp
    ${_here}/KeyTableTest.cpp
    LINK AccelAccelerate)
  accel_unit_test(job-test ${_here}/JobTest.cpp ${_here}/AdapterTest.cpp
    LINK AccelJob)
  # Read by test/parity/frontend_cases.py.
  accel_test_tool(frontend-dump ${_here}/FrontendDump.cpp
    LINK AccelJob nlohmann_json::nlohmann_json)
  accel_unit_test(scripts-test ${_here}/ScriptsTest.cpp LINK AccelScripts)
  # Read by test/parity/script_cases.py.
  accel_test_tool(script-dump ${_here}/ScriptDump.cpp
    LINK AccelScripts nlohmann_json::nlohmann_json)
endif()
