# Checks beyond parsing: no MLIR.
if(TARGET AccelLint)
  accel_unit_test(lint-test ${CMAKE_CURRENT_LIST_DIR}/LintTest.cpp
    LINK AccelLint)
endif()
