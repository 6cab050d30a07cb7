# Edits and fixes of YAML and JSON texts, diffs.
if(TARGET AccelAccelerate)
  accel_unit_test(fix-test ${CMAKE_CURRENT_LIST_DIR}/FixTest.cpp
    LINK AccelAccelerate)
endif()
