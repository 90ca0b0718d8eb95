cmake_minimum_required(VERSION 3.22)

# Run by the build after a test program: writes OUT, which tells ctest the program's tests, one a suite, and of a suite
# that runs under several shells one a shell. A process a test would be slower: under AddressSanitizer each takes half a
# second to begin.
# Takes PROGRAM and OUT.

# Suites that take long and share nothing: each of their tests is one of ctest, so that they run side by side.
set(each Launch PrepareTest KillOverSsh FollowOverSsh StoreFaults CondaTest Environments)
# Suites with a parameter that is no shell, and of quick tests: one test of ctest all the same.
set(whole CommandErrors)
# Suites that are not part of the gate, by the beginning of their names in ctest.
set(slow Environments CondaTest OtherMachine Hostile PrepareTest LifelineTest.busybox Launch.IsKilled KillTorchrun)

# What depends on what a release of Debian brings: torch and Python, pip and its rules. See tests/CMakeLists.txt.
set(release Environments PrepareTest FirstCause KillTorchrun)

# What is begun first, so that nothing waits for one of them alone at the end.
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
