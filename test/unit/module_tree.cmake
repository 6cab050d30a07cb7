# Module trees of transformers models: no MLIR.
if(TARGET AccelModuleTree)
  set(_here ${CMAKE_CURRENT_LIST_DIR})
  accel_unit_test(module-tree-test ${_here}/ModuleTreeTest.cpp
    LINK AccelModuleTree)
  # Read by test/parity/module_tree_cases.py.
  accel_test_tool(module-tree-dump ${_here}/ModuleTreeDump.cpp
    LINK AccelModuleTree nlohmann_json::nlohmann_json)
endif()
