#include "servers/fanout.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace remote::servers {
namespace {

TEST(FanOut, SaysBeforehandThatSoManyServersNeedMoreOpenFiles) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit low = before;
  low.rlim_cur = 256;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  EXPECT_NO_THROW(need_open_files(200));
  try {
    need_open_files(300);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.what_failed(), "cannot connect to 300 servers at once");
    EXPECT_EQ(error.reason(), "this machine allows 256 open files, and 340 are needed");
    EXPECT_EQ(error.cause(), Cause::no_resources);
  }
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

}  // namespace
}  // namespace remote::servers
