// Permissions that tests give to their projects are stored in a folder that is removed with the process.

#include <cstdlib>

#include "base/files.hpp"

namespace remote::test {
namespace {

class StateFolder {
 public:
  StateFolder() { ::setenv("XDG_STATE_HOME", folder_.path().c_str(), 1); }

 private:
  TempFolder folder_{"remote-state-"};
};

const StateFolder state_folder;

}  // namespace
}  // namespace remote::test
