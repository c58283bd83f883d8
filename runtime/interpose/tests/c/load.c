/* Calls `main` of a library that it loads for itself alone, as Python loads an extension module: ./load LIBRARY */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    int (*run)(int, char **) = library ? (int (*)(int, char **))dlsym(library, "main") : NULL;
    if (run) return run(0, NULL);
    fprintf(stderr, "load: %s\n", argc == 2 ? dlerror() : "usage: load LIBRARY");
    return 2;
}
