// Launchers that are started by a file in the project.

#include "cli/script_launcher.hpp"

#include <fstream>

#include <gtest/gtest.h>

#include "base/files.hpp"

namespace remote::cli {
namespace {

class ScriptLauncherTest : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder.path() / name) << text;
  }
  // "train.sh: torchrun"; "" if there is none.
  std::string find(const std::string& command) const {
    const auto found = find_script_launcher(folder.path(), command);
    return found ? found->file + ": " + found->name : "";
  }
  TempFolder folder;
};

TEST_F(ScriptLauncherTest, AShellScriptOfAnyNameIsRead) {
  write("run", "#!/usr/bin/env bash\ntorchrun train.py\n");
  write("bare", "torchrun train.py\n");
  EXPECT_EQ(find("./run"), "./run: torchrun");
  EXPECT_EQ(find("bash bare"), "bare: torchrun");
  EXPECT_EQ(find("A=1 bash -e run x"), "run: torchrun");
  write("run", "#!/usr/bin/perl\ntorchrun train.py\n");
  EXPECT_EQ(find("./run"), "");
  write("run", std::string("\x7f"
                           "ELF\0torchrun train.py\n",
                           23));
  EXPECT_EQ(find("./run"), "");
  write("run", "# torchrun train.py\necho torchrun\ntorchrun \\\n --node_rank $NODE_RANK train.py\n");
  EXPECT_EQ(find("bash run"), "");
  EXPECT_EQ(find("bash missing"), "");
  EXPECT_EQ(find("bash /etc/profile"), "");
}

TEST_F(ScriptLauncherTest, TheCommandMayStartOneItself) {
  write("train.sh", "torchrun train.py\n");
  const auto find_own = [&](const char* command) { return find_own_launcher(folder.path(), command); };
  EXPECT_EQ(find_own("cd . && torchrun train.py"), "torchrun");
  EXPECT_EQ(find_own("bash train.sh"), "torchrun");
  EXPECT_EQ(find_own("torchrun --nnodes 2 --node_rank $NODE_RANK train.py"), "");
  EXPECT_EQ(find_own("python train.py"), "");
}

TEST_F(ScriptLauncherTest, ALauncherMayBeInAVariable) {
  for (const char* text :
       {"CMD=\"torchrun train.py\"\n$CMD --lr 1\n", "export CMD='torchrun train.py'\neval ${CMD}\n",
        "cmd=(torchrun train.py)\n\"${cmd[@]}\"\n"}) {
    write("train.sh", text);
    EXPECT_EQ(find("bash train.sh"), "train.sh: torchrun") << text;
  }
  for (const char* text : {"CMD='torchrun train.py'\n$CMDS\n", "CMD='torchrun train.py'\necho CMD\n",
                           "CMD='torchrun'\n$CMD --node_rank $NODE_RANK train.py\n"}) {
    write("train.sh", text);
    EXPECT_EQ(find("bash train.sh"), "") << text;
  }
}

TEST_F(ScriptLauncherTest, APythonFileMayStartALauncher) {
  for (const char* text :
       {"import os\nos.system('torchrun --nproc_per_node=2 train.py')\n",
        "subprocess.run([\"torchrun\", \"train.py\"])\n",
        "    subprocess.check_call([sys.executable, '-m', 'torch.distributed.run', 'train.py'])\n",
        "p = Popen(f\"accelerate launch {script}\", shell=True)\n"}) {
    write("go.py", text);
    EXPECT_NE(find("python go.py"), "") << text;
    EXPECT_NE(find("python -u go.py --lr 1"), "") << text;
  }
  for (const char* text : {"print('torchrun train.py')\n", "# subprocess.run(['torchrun', 'x.py'])\n",
                           "subprocess.run(['echo', 'torchrun', 'x.py'])\n",
                           "os.system(f\"torchrun --node_rank {os.environ['NODE_RANK']} train.py\")\n"}) {
    write("go.py", text);
    EXPECT_EQ(find("python go.py"), "") << text;
  }
}

TEST_F(ScriptLauncherTest, ATargetOfAMakefileMayStartALauncher) {
  write("Makefile",
        "RUN ?= torchrun --nproc_per_node=2\nall: data train\ndata:\n\tpython prepare.py\n"
        "train: data\n\t@$(RUN) train.py\nscript:\n\tbash train.sh\nloop: loop\n\ttrue\n"
        "told:\n\ttorchrun --node_rank $$NODE_RANK train.py\n");
  write("train.sh", "torchrun train.py\n");
  EXPECT_EQ(find("make train"), "make train: torchrun");
  EXPECT_EQ(find("A=1 make -j 4 B=1 train && echo x"), "make train: torchrun");
  EXPECT_EQ(find("make"), "make train: torchrun");
  EXPECT_EQ(find("make script"), "train.sh: torchrun");
  EXPECT_EQ(find("make -f Makefile train"), "make train: torchrun");
  for (const char* command : {"make data", "make loop", "make told", "make missing", "make -C sub train",
                              "make -f nowhere train", "echo make train", ""}) {
    EXPECT_EQ(find(command), "") << command;
  }
}

}  // namespace
}  // namespace remote::cli
