cmake_minimum_required(VERSION 3.22)

# Run by the build after a test program: writes OUT, which defines the program's ctest tests: one per suite, or one per
# shell if a suite runs with several shells. One process per test would be slower, because with AddressSanitizer each
# takes half a second to start.
# Takes PROGRAM and OUT.

# Long suites whose tests are independent: each test is a ctest test, so that they run in parallel.
set(each Launch PrepareTest KillOverSsh FollowOverSsh StoreFaults CondaTest Environments)
# Suites of quick tests whose parameter is not a shell: still one ctest test.
set(whole CommandErrors)
# Suites that are not part of the gate, by the beginning of their ctest names.
set(slow Environments CondaTest OtherMachine Hostile PrepareTest LifelineTest.busybox Launch.IsKilled KillTorchrun)

# Tests that depend on the release of Debian: torch and Python, pip and its rules. See tests/CMakeLists.txt.
set(release Environments PrepareTest FirstCause KillTorchrun)

# Started first, so that they do not run alone at the end.
set(long Hostile FirstCause LifelineTest SyncTest SshExec JobKill Launch.IsKilledBefore TerminalSession)

execute_process(COMMAND ${PROGRAM} --gtest_list_tests
                OUTPUT_VARIABLE listing COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE ";" "," listing "${listing}")
string(REPLACE "\n" ";" lines "${listing}")
set(groups "")
foreach(line IN LISTS lines)
  string(REGEX REPLACE " +#.*" "" line "${line}")
  if(line MATCHES "^([A-Za-z0-9_/]+)\\.$")
    set(suite ${CMAKE_MATCH_1})
    string(REGEX REPLACE "^.*/" "" name ${suite})
  elseif(line MATCHES "^  ([A-Za-z0-9_]+)(/([A-Za-z0-9_]+))?$")
    if(name IN_LIST each)
      list(APPEND groups "${name}.${CMAKE_MATCH_1}${CMAKE_MATCH_2}=${suite}.${CMAKE_MATCH_1}${CMAKE_MATCH_2}")
    elseif(CMAKE_MATCH_3 AND NOT name IN_LIST whole)
      list(APPEND groups "${name}.${CMAKE_MATCH_3}=${suite}.*/${CMAKE_MATCH_3}")
    else()
      list(APPEND groups "${name}=${suite}.*")
    endif()
  endif()
endforeach()
list(REMOVE_DUPLICATES groups)
set(text "")
foreach(group IN LISTS groups)
  string(REGEX MATCH "^([^=]*)=(.*)$" matched ${group})
  set(name ${CMAKE_MATCH_1})
  set(filter ${CMAKE_MATCH_2})
  set(label quick)
  foreach(pattern IN LISTS slow)
    if(name MATCHES "^${pattern}")
      set(label slow)
    endif()
  endforeach()
  foreach(pattern IN LISTS release)
    if(name MATCHES "^${pattern}")
      string(APPEND label "\\;release")
    endif()
  endforeach()
  if(name MATCHES "\\.(bash|busybox)$")
    string(APPEND label "\\;shells")
  endif()
  set(cost 0)
  foreach(pattern IN LISTS long)
    if(name MATCHES "^${pattern}")
      set(cost 50)
    endif()
  endforeach()
  string(APPEND text "add_test([[${name}]] [[${PROGRAM}]] [[--gtest_brief=1]] [[--gtest_filter=${filter}]])\n"
         "set_tests_properties([[${name}]] PROPERTIES LABELS [[integration;${label}]] TIMEOUT 600 COST ${cost})\n")
endforeach()
file(WRITE ${OUT} "${text}")
