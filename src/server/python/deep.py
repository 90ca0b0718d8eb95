# What torch is once it is imported, for `remote check --deep`: run by the Python of the environment, as a job would be.
# Prints messages, each a line "remote-deep JSON" (src/wire/deep.hpp). Nothing is written.
import hashlib, json, os, sys, time

def report(kind, **fields):
    print("remote-deep", json.dumps(dict(fields, kind=kind)), flush=True)

def describe(error):
    text = " ".join((type(error).__name__ + ": " + str(error)).split())[:300]
    return text.encode("utf-8", "replace").decode()  # no lone surrogates, which are not JSON

print(flush=True)
begun = time.time()
try:
    import torch
except BaseException as error:
    report("failed", reason=describe(error))
    report("end")
    sys.exit(0)
report("torch", version=str(torch.__version__).split()[0], took=int(1000 * (time.time() - begun)))
try:
    devices = torch.cuda.device_count() if torch.cuda.is_available() else 0
    report("devices", count=devices, cuda=torch.version.cuda or torch.version.hip or "-")
    if devices and not torch.version.hip:
        version = torch.cuda.nccl.version()
        report("nccl", version=".".join(map(str, version)) if isinstance(version, tuple) else str(version))
except Exception as error:
    report("trouble", reason=describe(error))

# The shared libraries that are really mapped, but for the system's own: of two that have one name, one may be of another package.
# The digest is of the size and of both ends, where a library has its build id and its tables: some have two gigabytes.
piece = 4 << 20
seen = set()
for line in open("/proc/self/maps", errors="replace"):
    path = line.split(None, 5)[5].rstrip("\n") if line.count("/") else ""
    name = os.path.basename(path)
    if ".so" not in name or path in seen or not path.startswith("/"):
        continue
    if not any(part in path for part in ("/site-packages/", "/dist-packages/", "/cuda", "/nvidia", "/rocm")) and not name.startswith(("libcuda", "libnccl", "libnvidia")):
        continue
    if "/lib-dynload/" in path or name.split(".so")[0].endswith(("-linux-gnu", "-darwin")):
        continue  # modules of Python, which belong to one package each
    seen.add(path)
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            digest = hashlib.sha256(str(size).encode())
            digest.update(file.read(piece))
            if size > 2 * piece:
                file.seek(size - piece)
            digest.update(file.read(piece))
        report("library", digest=digest.hexdigest()[:16], size=size, path=path)
    except OSError:
        pass
report("end")
