// What the tests allow to their projects is kept in a folder that goes with the process.

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
