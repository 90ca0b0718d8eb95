#pragma once

// The version of these headers, for programs that support several. CMakeLists.txt reads it from here.
#define REMOTE_VERSION_MAJOR 0
#define REMOTE_VERSION_MINOR 1
#define REMOTE_VERSION_PATCH 0
