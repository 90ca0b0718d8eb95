# REMOTE_AGENT_SOURCES: the sources of the agent, without src/agent/main.cpp and unused_parts.cpp.
get_filename_component(root ${CMAKE_CURRENT_LIST_DIR} DIRECTORY)
file(GLOB REMOTE_AGENT_SOURCES CONFIGURE_DEPENDS RELATIVE ${root} ${root}/src/agent/*/*.cpp ${root}/src/rules/*.cpp ${root}/src/wire/*.cpp)
list(APPEND REMOTE_AGENT_SOURCES src/base/strings.cpp src/base/decimal.cpp src/base/format.cpp)
list(REMOVE_ITEM REMOTE_AGENT_SOURCES src/wire/json.cpp)
