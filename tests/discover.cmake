# Writes the ctest file of a GoogleTest program: one test a suite (BY suite), since to start a program takes as long as
# most tests do, or one a test (BY test), where each takes long and two cores are to share them.
#   cmake -D PROGRAM=... -D BY=suite|test -D PROPERTIES="LABELS;unit" -D OUTPUT=... -P discover.cmake
cmake_policy(SET CMP0054 NEW)
execute_process(COMMAND ${PROGRAM} --gtest_list_tests OUTPUT_VARIABLE listed RESULT_VARIABLE status ERROR_QUIET)
if(status)
  message(FATAL_ERROR "${PROGRAM} --gtest_list_tests: ${status}")
endif()
string(REGEX REPLACE "[ \t]*#[^\n]*" "" listed "${listed}")  # what parameters print, addresses among it
string(REPLACE "\n" ";" lines "${listed}")
get_filename_component(folder ${PROGRAM} DIRECTORY)
set(text "")
function(add name)
  string(APPEND text "add_test([=[${name}]=] ${PROGRAM} [=[--gtest_filter=${name}${ARGN}]=])\n"
                     "set_tests_properties([=[${name}]=] PROPERTIES WORKING_DIRECTORY ${folder} ${PROPERTIES})\n")
  set(text "${text}" PARENT_SCOPE)
endfunction()
foreach(line IN LISTS lines)
  if(line MATCHES "^([^ ]+)\\.$")
    set(suite ${CMAKE_MATCH_1})
    if(BY STREQUAL "suite")
      add(${suite} ".*")
    endif()
  elseif(line MATCHES "^  ([^ ]+)$" AND BY STREQUAL "test")
    add(${suite}.${CMAKE_MATCH_1})
  endif()
endforeach()
file(WRITE ${OUTPUT} "${text}")
