# Writes the lines of a text as C++ string literals:
#   cmake -DIN=lines.txt -DOUT=Lines.inc -P TextLines.cmake
file(READ ${IN} text)
string(REPLACE "\\" "\\\\" text "${text}")
string(REPLACE "\"" "\\\"" text "${text}")
string(REGEX REPLACE "([^\n]+)\n" "\"\\1\",\n" text "${text}")
file(CONFIGURE OUTPUT ${OUT} CONTENT "${text}" @ONLY)
