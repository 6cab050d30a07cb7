# Module trees of transformers models: no MLIR.
if(TARGET AccelModuleTree)
  set(_here ${CMAKE_CURRENT_LIST_DIR})
  accel_unit_test(module-tree-test ${_here}/ModuleTreeTest.cpp
    LINK AccelModuleTree)
  # Read by test/parity/module_tree_cases.py.
  add_executable(module-tree-dump ${_here}/ModuleTreeDump.cpp)
  target_link_libraries(module-tree-dump PRIVATE AccelModuleTree
    nlohmann_json::nlohmann_json)
  add_dependencies(unit-tests module-tree-dump)
endif()
